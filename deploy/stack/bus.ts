import { createRequests } from '@app/shared/requests.ts'
import type { Service } from '@app/shared/service.ts'
import { connect } from 'nats'
import { sentenceOf } from '../command.ts'

/** What a question to a service needs. */
export type Bus = Pick<Service, 'nc' | 'request' | 'isConnected'>

/** Connects for as long as the work takes. */
export async function withBus<T>(natsUrl: string, work: (bus: Bus) => Promise<T>): Promise<T> {
  const nc = await connect({ servers: natsUrl.split(','), name: 'deploy' }).catch((err) => {
    throw new Error(`The nats-server at ${natsUrl} cannot be reached: ${sentenceOf(err)}`, { cause: err })
  })
  try {
    const { request } = createRequests(nc, '_INBOX')
    return await work({ nc, request, isConnected: () => !nc.isClosed() })
  } finally {
    await nc.close()
  }
}
