-- An item may be a change of another field than messages; a business account's lane is `<organization>:<business account>`.
alter table callback_items drop constraint callback_items_kind_check;
alter table callback_items add constraint callback_items_kind_check check (kind in ('message', 'status', 'change')) not valid;
