import { createHmac, hash, pbkdf2Sync, randomBytes } from 'node:crypto'

/** As many as Postgres takes itself. */
const rounds = 4_096

/**
 * What Postgres keeps of a password (SCRAM-SHA-256, RFC 5803), made here, as psql's `\password` makes it: a statement that holds the
 * password itself stands in the server's log with it when it fails, and always where changes of roles are logged.
 */
export function verifierOf(password: string): string {
  const salt = randomBytes(16)
  const salted = pbkdf2Sync(password, salt, rounds, 32, 'sha256')
  const keyOf = (name: string) => createHmac('sha256', salted).update(name).digest()
  const storedKey = hash('sha256', keyOf('Client Key'), 'base64')
  return `SCRAM-SHA-256$${rounds}:${salt.toString('base64')}$${storedKey}:${keyOf('Server Key').toString('base64')}`
}
