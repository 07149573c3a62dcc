-- The API log, batch by batch as gateways send it, with a line of text for each call: as rows of `api_log` they took twice the work and five times
-- the space (190 bytes a call; Postgres compresses these lines to 34). What was written there is read until its 30 days are over.
create table api_calls (
  recorded_at timestamptz not null default now(),
  -- Of the ids of its requests the least and the greatest.
  first_request text collate "C" not null,
  last_request text collate "C" not null,
  -- By the gateway's clock; the calls count their milliseconds from it.
  began timestamptz(3) not null,
  -- The callers, from 1 on: whose key it was ('': no valid one), and from where.
  organization_ids text[] collate "C" not null,
  key_ids text[] collate "C" not null,
  ips text[] not null,
  -- Lines of `began took caller request status method path problem`, as the contract `record-calls` tells.
  calls text not null
) partition by range (recorded_at);
create table api_calls_default partition of api_calls default;
-- Keys are looked for from the end of the log backwards.
create index api_calls_recorded on api_calls (recorded_at);
-- Support asks by request id. They rise with time, so that a hundredth of a percent of a b-tree's size tells where to look.
create index api_calls_requests on api_calls using brin (first_request, last_request) with (autosummarize = on);
