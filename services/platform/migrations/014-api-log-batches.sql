-- Batches of the API log that were recorded, for a day: one that comes again is recorded once.
create table api_log_batches (
  id text collate "C" primary key,
  recorded_at timestamptz not null default now()
);
-- It told by each call whether it had been recorded, for a quarter of what the log cost.
alter table api_log drop constraint api_log_pkey;
-- Support asks by request id. They rise with time, so that a hundredth of a percent of a b-tree's size tells where to look.
create index api_log_request on api_log using brin (request_id) with (autosummarize = on);
