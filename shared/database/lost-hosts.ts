/**
 * Settings of a session, for a host that is there no more: it lost its power, or its cable. Nobody tells Postgres, which by itself keeps
 * the session for two hours and eleven minutes, and for 16 minutes while it is sending to it; with it all of its locks, such as that of a
 * relay, of housekeeping, of migrations. So it is asked after 10 s of silence, and is gone when it has said nothing for 20 s.
 * The system of the server counts; one that has no such limit of its own for what is being sent (macOS) says so in its log.
 */
export const lostHosts = {
  tcp_keepalives_idle: 10,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 2,
  tcp_user_timeout: 20_000,
}
