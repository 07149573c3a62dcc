import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { expect } from 'vitest'
import { adminOf } from '../admin.ts'
import type { Json } from '../client.ts'
import type { Overheard } from './overheard.ts'

interface Asked {
  sentAt: number
  status: number
  code: string | undefined
}

/** Asks over as many connections as it is told to; each question is on its way when this returns. */
function ask({ url, agent }: { url: string; agent: Agent }, key: string, times: number): Promise<Asked[]> {
  return Promise.all(
    Array.from({ length: times }, async () => {
      const sentAt = Date.now()
      const headers = { authorization: `Bearer ${key}` }
      const { statusCode: status, body } = await request(`${url}/v1/me`, { headers, dispatcher: agent })
      const { error } = (await body.json()) as Json
      return { sentAt, status, code: error?.code as string | undefined }
    }),
  )
}

/**
 * Of requests that race a revocation over three gateways, none that was sent after the revoking call returned succeeds, not even at one
 * that was frozen meanwhile.
 */
export async function raceRevocation({ stack }: Overheard) {
  const { organization_id: organization, services } = stack.read()
  const admin = adminOf(stack.dataDir)
  const { id, key } = await admin('key', 'create', '--organization', organization, '--label', 'to be revoked')
  const gateways = (services['gateway'] ?? []).map(({ public_url: url = '', pid }, n) => {
    // An address of its own each, since failures are counted.
    const agent = new Agent({ connections: 25, localAddress: `127.79.0.${n + 1}` })
    return { url, pid: pid ?? 0, agent }
  })
  expect(gateways).toHaveLength(3)
  const [frozen, ...awake] = gateways
  if (!frozen) throw new Error('There is no gateway.')
  const before = await Promise.all(gateways.map((gateway) => ask(gateway, key, 25)))
  expect(before.flat().map(({ status }) => status)).toEqual(Array(75).fill(200))

  process.kill(frozen.pid, 'SIGSTOP')
  const racing: Promise<Asked[]>[] = []
  let late: Promise<Asked[]>
  let revokedAt: number
  try {
    const revoking = admin('key', 'revoke', id)
    let isOver = false
    void revoking.finally(() => (isOver = true))
    for (let n = 0; !isOver; n++) {
      racing.push(ask(awake[n % awake.length] ?? frozen, key, 2))
      await sleep(40)
    }
    await revoking
    revokedAt = Date.now()
    racing.push(...awake.map((gateway) => ask(gateway, key, 25)))
    // These wait in the sockets of the one that still remembers the key.
    late = ask(frozen, key, 25)
    await sleep(100)
  } finally {
    process.kill(frozen.pid, 'SIGCONT')
  }
  const answers = (await Promise.all([...racing, late])).flat()
  const after = answers.filter(({ sentAt }) => sentAt >= revokedAt)
  expect(after.length).toBeGreaterThanOrEqual(75)
  expect(after.filter(({ status }) => status < 400)).toEqual([])
  // One whose event loop was late turns requests away for a moment; all others know why.
  const refused = after.filter(({ status }) => status !== 503)
  expect(new Set(refused.map(({ status, code }) => `${status} ${code}`))).toEqual(new Set(['401 revoked_api_key']))
  expect(refused.length).toBeGreaterThanOrEqual(50)
  // Before it was over, some were still let in: the race was one.
  expect(answers.some(({ sentAt, status }) => sentAt < revokedAt && status === 200)).toBe(true)
  const soon = { timeout: 10_000 }
  await expect.poll(async () => (await ask(frozen, key, 1))[0]?.code, soon).toBe('revoked_api_key')
  await Promise.all(gateways.map(({ agent }) => agent.destroy()))
}
