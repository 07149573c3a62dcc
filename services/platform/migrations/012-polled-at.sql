-- When the platform was asked for a number last: errors of sends do not have it asked more often than once a minute.
alter table accounts add column polled_at timestamptz(3);
