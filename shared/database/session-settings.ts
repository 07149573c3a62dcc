import type { ConnectionParameters } from 'postgres'

/**
 * For a host that is there no more: it lost its power, or its cable. Nobody tells Postgres, which by itself keeps
 * the session for two hours and eleven minutes, and for 16 minutes while it is sending to it; with it all of its locks, such as that of a
 * relay, of housekeeping, of migrations. So it is asked after 10 s of silence, and is gone when it has said nothing for 20 s.
 * The system of the server counts; one that has no such limit of its own for what is being sent (macOS) says so in its log.
 */
const lostHosts = {
  tcp_keepalives_idle: 10,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 2,
  tcp_user_timeout: 20_000,
}

/** 24 days, which is the longest time that can be set. The driver leaves out what is 0, which would be none. */
export const longestMs = 2_147_483_647

/**
 * What each login asks for, be it a service's or a migration's. A server, a database or a role may be set otherwise, for another
 * program or by the habits of a country; our statements, and how their answers are read, are written for these.
 */
export const sessionSettings: Partial<ConnectionParameters> = {
  // What was accepted is on the disk, and on that of a synchronous standby, before it is said.
  synchronous_commit: 'on',
  // Two who change one row wait for each other, where `serializable` would refuse one of them.
  default_transaction_isolation: 'read committed',
  // Those of a pool, and of whoever holds a lock, rest for as long as nothing is to be done.
  idle_session_timeout: longestMs,
  TimeZone: 'UTC',
  DateStyle: 'ISO',
  IntervalStyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: 1,
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  transform_null_equals: 'off',
  quote_all_identifiers: 'off',
  ...lostHosts,
}
