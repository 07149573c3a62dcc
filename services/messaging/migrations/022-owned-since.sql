-- When the number came here from another organization: callbacks that came before are that one's.
alter table senders add column owned_since timestamptz not null default 'epoch';
