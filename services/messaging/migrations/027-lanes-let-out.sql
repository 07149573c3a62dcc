-- Lanes of sends that were let out of the order of their conversation, for the sweep that takes them away. The id never changes, so that
-- updates of lanes stay as cheap as they were.
create index send_lanes_let_out on send_lanes (id) where strpos(id, ':') > 0;
