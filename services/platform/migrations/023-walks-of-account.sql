-- Each poll of an account that waits for its number asks for the walks that brought it, and read all of its organization: 200,000 rows in 58 ms
-- where there were as many. A walk has an account from when its number is connected.
create index onboardings_account on onboardings (organization_id, account_id) where account_id is not null;
