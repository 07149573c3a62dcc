/**
 * What the services' roles are set to on the servers of the tests, so that a login that does not ask for a setting is found. Each is one
 * that somebody's server has, for another program or by the habits of a country; all together are nobody's.
 */
export const foreignSettings: Record<string, string> = {
  synchronous_commit: 'off',
  default_transaction_isolation: 'serializable',
  idle_session_timeout: '1s',
  idle_in_transaction_session_timeout: '0',
  statement_timeout: '1min',
  lock_timeout: '1min',
  search_path: 'elsewhere',
  TimeZone: 'Asia/Kathmandu',
  DateStyle: 'SQL, DMY',
  IntervalStyle: 'sql_standard',
  bytea_output: 'escape',
  extra_float_digits: '-3',
  array_nulls: 'off',
  transform_null_equals: 'on',
  quote_all_identifiers: 'on',
  plan_cache_mode: 'force_custom_plan',
  max_parallel_workers_per_gather: '8',
  enable_seqscan: 'on',
  jit: 'on',
  random_page_cost: '4',
  effective_cache_size: '8MB',
}
