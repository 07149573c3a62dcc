-- Conversations that ended in another are resolved from now on when they end; these ended before, and no inbox could close them.
update conversations set status = 'resolved', updated_at = greatest(updated_at, now())
where merged_into is not null and status <> 'resolved';
