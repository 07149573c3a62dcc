-- Other ids of the platform's for a message that was sent again while nobody knew whether it had arrived; `messages` has the first.
create table message_doubles (
  organization_id text not null,
  upstream_id text not null,
  message_id text not null,
  -- As in `messages`, of this id.
  told smallint not null default 0,
  primary key (organization_id, upstream_id)
);
create index message_doubles_message on message_doubles (message_id);
