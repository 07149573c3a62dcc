-- When an upload may be forgotten: an hourly sweep asks, of a month's. One without `expires_at` was held by who died over it.
create index media_uploads_age on media_uploads (coalesce(expires_at, held_until));
