-- A message that its sender deleted for everyone stays readable; `content` is what is read.
alter table messages
  add column revoked_at timestamptz(3),
  -- The first version and the later ones ({id, content, edited_at}, oldest first), once it was edited.
  add column original_content text,
  add column edits jsonb;
