import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll } from 'vitest'
import { startTestGateway, type TestGateway } from './gateway.ts'

/** A gateway for the tests of a file, and the key of an organization that has the number; there once they run. */
export function gatewayWithKey(phone = '123456') {
  const both = {} as { gateway: TestGateway; key: string }
  beforeAll(async () => {
    both.gateway = await startTestGateway()
    const issued = both.gateway.platform.issueKey()
    both.key = issued.text
    both.gateway.platform.accounts.add(`${issued.organizationId}:${phone}`)
  })
  afterAll(() => both.gateway.close())
  return Object.assign(both, {
    /** What a connection answers to bytes of HTTP. */
    say: (bytes: string) => {
      const { hostname, port } = new URL(both.gateway.url)
      const socket = connect(Number(port), hostname, () => socket.write(bytes))
      socket.on('error', () => {})
      return text(socket)
    },
  })
}

export const bodyOf = (response: string) => JSON.parse(response.slice(response.indexOf('\r\n\r\n')))
