-- How often the platform has said that it does not have the file, or not for our token. All else is tried for as long as it keeps one.
alter table media_copies add column refusals int not null default 0;
