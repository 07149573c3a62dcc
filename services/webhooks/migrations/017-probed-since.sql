-- When the `failures` became so many that its endpoint is probed; means nothing while they are fewer. Null, or before `failing_since`:
-- what counted them does not know of it.
alter table lanes add column probed_since timestamptz;
