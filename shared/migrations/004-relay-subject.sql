-- The newest of our events in the stream: its subject is nobody else's, so the stream can be asked whether it is still there.
alter table relay_position add column last_subject text, add column last_subject_seq bigint;
