import { hash, randomBytes } from 'node:crypto'
import type { Input } from '@app/shared/api/contract.ts'
import { authenticateKey, findAccount, recordCalls } from '@app/shared/contracts/platform.ts'
import { newId } from '@app/shared/values/ids.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import type { Service } from '@app/shared/service/service.ts'

interface IssuedKey {
  text: string
  id: string
  organizationId: string
  state: 'valid' | 'revoked' | 'expired'
  expiresAt: string | null
  tier: { name: 'standard'; write_per_minute: number; read_per_minute: number }
  features: Array<'messaging' | 'platform' | 'webhooks'>
}

type Batch = Input<typeof recordCalls>['body']
type ApiCall = ReturnType<typeof callsOf>[number]

/** The platform service, as far as the gateway knows it, with keys and numbers that tests make. */
export interface TestPlatform {
  issueKey: (fields?: Partial<IssuedKey>) => IssuedKey
  /** Numbers as `organizationId:phoneNumberId`. */
  accounts: Set<string>
  /** How often a key or a number was looked up. */
  lookUps: { keys: number; accounts: number }
  apiCalls: ApiCall[]
  /** Names of the batches that they came in. */
  batches: string[]
  /** What happens between the recording of a batch and the answer. */
  afterRecording: () => unknown
  /** Each look-up waits for it before it answers, having read before. */
  delay: () => Promise<unknown>
  stop: () => Promise<void>
}

export async function startTestPlatform(service: Service): Promise<TestPlatform> {
  const keys = new Map<string, IssuedKey>()
  const platform: TestPlatform = {
    issueKey(fields) {
      const key = { ...newKey(), ...fields }
      keys.set(hash('sha256', key.text), key)
      return key
    },
    accounts: new Set(),
    lookUps: { keys: 0, accounts: 0 },
    apiCalls: [],
    batches: [],
    afterRecording: () => {},
    delay: () => Promise.resolve(),
    stop: () => serving.stop(),
  }
  const contracts = { authenticateKey, findAccount, recordCalls }
  const serving = await serve({ ...service, name: 'platform' }, contracts, {
    async authenticateKey(_app, { body }) {
      platform.lookUps.keys++
      const answer = answerOf(keys.get(body.key_hash))
      await platform.delay()
      return answer
    },
    async findAccount(_app, { params }, { organizationId }) {
      platform.lookUps.accounts++
      const isThere = platform.accounts.has(`${organizationId}:${params.phone_number_id}`)
      await platform.delay()
      if (!isThere) throw notFound()
      return { account_id: newId('acc'), phone_number_id: params.phone_number_id, customer_id: null }
    },
    async recordCalls(_app, { body }) {
      const calls = callsOf(body)
      platform.apiCalls.push(...calls)
      platform.batches.push(body.batch)
      await platform.afterRecording()
      return { recorded: true }
    },
  })
  return platform
}

/** The lines, call by call. */
const callsOf = ({ began, callers, calls }: Batch) =>
  calls.split('\n').map((line) => {
    const [offset, took, caller, requestId, status, method, path, ...problem] = line.split(' ')
    return {
      ...callers[Number(caller) - 1],
      at: new Date(Date.parse(began) + Number(offset)).toISOString(),
      took_us: Number(took),
      request_id: requestId,
      status,
      method,
      path,
      problem: problem.join(' '),
    }
  })

const newKey = (): IssuedKey => ({
  text: `svc_live_${randomBytes(18).toString('base64url')}`,
  id: newId('key'),
  organizationId: newId('org'),
  state: 'valid',
  expiresAt: null,
  tier: { name: 'standard', write_per_minute: 600, read_per_minute: 6_000 },
  features: ['messaging', 'platform', 'webhooks'],
})

function answerOf(key: IssuedKey | undefined) {
  if (!key) {
    const nothing = { key_id: null, organization_id: null, expires_at: null, tier: null, features: [], me: null }
    return { state: 'unknown' as const, ...nothing }
  }
  const { state, id, organizationId, expiresAt, tier, features } = key
  const { name, ...rates } = tier
  const me = {
    organization: { id: organizationId, object: 'organization' as const, name: 'Acmé' },
    api_key: { id, object: 'api_key' as const, label: 'test', last4: 'abcd' },
    rate_limits: { tier: name, ...rates },
    teams: [],
  }
  return { state, key_id: id, organization_id: organizationId, expires_at: expiresAt, tier, features, me }
}
