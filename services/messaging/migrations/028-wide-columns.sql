-- As in shared/migrations/005-wide-columns.sql.
alter table messages
  alter column content set statistics 0,
  alter column original_content set statistics 0,
  alter column body set statistics 0,
  alter column parties set statistics 0,
  alter column error set statistics 0,
  alter column edits set statistics 0,
  alter column traceparent set statistics 0;
alter table sends alter column media set statistics 0;
alter table callbacks alter column body set statistics 0;
alter table callback_items alter column item set statistics 0;
alter table media_copies alter column event set statistics 0;
alter table media_uploads alter column failure set statistics 0;
alter table templates alter column components set statistics 0;
alter table senders alter column settings set statistics 0;
