-- A subscription that paused itself (disabled_reason consecutive_failures) is disabled when that lasts for days.
alter table subscriptions add column paused_at timestamptz(3);
create index subscriptions_failing on subscriptions (paused_at) where disabled_reason = 'consecutive_failures';

-- When the first of its `failures` came; means nothing while there are none.
alter table lanes add column failing_since timestamptz;
