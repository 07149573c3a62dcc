-- Calls of the public API, kept for 30 days.
create table api_log (
  at timestamptz(3) not null,
  -- Null when the call brought no valid key.
  organization_id text collate "C",
  key_id text collate "C",
  request_id text collate "C" not null,
  method text not null,
  path text not null,
  status int not null,
  duration_ms real not null,
  ip text not null,
  -- Support asks by request id; and a batch that is recorded twice is one.
  primary key (request_id, at)
) partition by range (at);
create table api_log_default partition of api_log default;
