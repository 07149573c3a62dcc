import { connectWithinMs, identityOf } from '@app/shared/bus/bus.ts'
import { withoutPasswords } from '@app/shared/bus/first-connection.ts'
import { createRequests } from '@app/shared/bus/requests.ts'
import type { Service } from '@app/shared/service/service.ts'
import { connect, ErrorCode, NatsError } from 'nats'
import { sentenceOf } from '../command.ts'
import { patiently } from '../patiently.ts'

/** What a question to a service needs. */
export type Bus = Pick<Service, 'nc' | 'request' | 'isConnected'>

/** Where the bus is, and the secret of its operator; a server without users asks for none. */
export interface BusPlace {
  natsUrl: string
  natsSeed?: string | undefined
}

/** How the operator connects. */
export const operatorOptions = ({ natsUrl, natsSeed }: BusPlace) => ({
  // The client leaves out who is named in an address, and takes the digits of a password for the port.
  servers: withoutPasswords(natsUrl).split(','),
  timeout: connectWithinMs,
  ...identityOf('deploy', natsSeed),
})

function faultOf(err: unknown) {
  if (err instanceof Error && err.message.startsWith('nkeys: '))
    return `cannot be asked: NATS_NKEY_SEED must be the nkey seed of a user (SU…), and is none (${err.message})`
  const isRefusal = err instanceof NatsError && err.code === ErrorCode.AuthorizationViolation
  if (!isRefusal) return `cannot be reached: ${sentenceOf(err)}`
  return (
    'does not know us: NATS_NKEY_SEED must be the seed of its user "deploy", and its configuration needs the users of ' +
    'deploy/nats/users.conf (or none at all).'
  )
}

/** A server that starts on a busy machine says nothing for a while, and neither does one that is gone for good. */
const silenceMs = 5_000
const isSilent = (err: unknown) => err instanceof NatsError && err.code === ErrorCode.Timeout

/** Connects for as long as the work takes. */
export async function withBus<T>(place: BusPlace, work: (bus: Bus) => Promise<T>): Promise<T> {
  const bus = await openBus(place)
  try {
    return await work(bus)
  } finally {
    await bus.nc.close()
  }
}

/** Connects until the connection is closed. */
export async function openBus(place: BusPlace): Promise<Bus> {
  const { natsUrl } = place
  const options = operatorOptions(place)
  const nc = await patiently(() => connect(options), isSilent, silenceMs).catch((err) => {
    throw new Error(`The nats-server at ${withoutPasswords(natsUrl)} ${faultOf(err)}`, { cause: err })
  })
  const { request } = createRequests(nc, options.inboxPrefix)
  return { nc, request, isConnected: () => !nc.isClosed() }
}
