import { createUpstream, upstreamSettings } from '@app/shared/upstream.ts'
import { Agent } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { send } from './send.ts'

const env = z.object(upstreamSettings).parse({ UPSTREAM_APP_ID: '1000', UPSTREAM_BASE_URL: 'http://platform.test:9' })

const message = {
  phoneNumberId: '106540352242922',
  token: 'token',
  messageId: 'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  recipient: '+15550123456',
  type: 'text',
  body: { body: 'hi' },
  contextId: null,
}

/** Sends to a platform whose host has these addresses. */
function sendTo(...addresses: string[]) {
  const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  const upstream = createUpstream(env)
  const agent = new Agent({ connect: { lookup: (_host, _options, done) => done(null, found) } })
  onTestFinished(() => Promise.all([agent.destroy(), upstream.agent.destroy()]).then(() => undefined))
  return send({ ...upstream, agent }, message)
}

test.each([
  ['one address that no way leads to', ['224.0.0.1']],
  ['several addresses, none of which a way leads to', ['224.0.0.1', '224.0.0.2']],
  ['several addresses that refuse', ['127.0.0.1', '::1']],
  ['one that no way leads to and one that refuses', ['224.0.0.1', '127.0.0.1']],
])('a platform with %s was surely told nothing', async (_, addresses) => {
  expect(await sendTo(...addresses)).toMatchObject({
    kind: 'unreachable',
    details: expect.stringMatching(/^E[A-Z]+: ./),
  })
})
