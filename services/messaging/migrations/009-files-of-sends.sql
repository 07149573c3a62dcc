-- A file of ours that a send carries: its id and its place in the block, and the platform's id once it was brought there.
alter table sends add column media jsonb, add column upstream_media_id text;
