import { randomBytes } from 'node:crypto'
import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { inboxOf } from '@app/shared/bus/inbox.ts'
import * as messaging from '@app/shared/contracts/messaging.ts'
import * as platform from '@app/shared/contracts/platform.ts'
import * as webhooks from '@app/shared/contracts/webhooks.ts'
import type { Place, SealedCount } from '@app/shared/contracts/secrets.ts'
import { z } from 'zod'
import type { Bus } from '../stack/bus.ts'

/** The services that seal, in the order in which they seal again: messaging takes over what platform has sealed. */
const sealing = { platform, messaging, webhooks }
type Sealing = keyof typeof sealing
const names = Object.keys(sealing) as Sealing[]

/** What the services have sealed, and with which keys they run. */
interface Standing {
  /** Of each service the keys of its instances, the current one first. */
  instances: Record<Sealing, string[][]>
  secrets: Array<SealedCount & { service: Sealing }>
  /** Keys that nothing needs, any more or (one that was just added) yet: they may leave `SEAL_KEYS`. */
  removable: string[]
}

export async function countSecrets(bus: Bus, requestId: string): Promise<Standing> {
  const all = await Promise.all(
    names.map(async (service) => {
      const { counts } = await call(bus, sealing[service].countSecrets, {}, systemCaller('', requestId))
      return { service, rings: await ringsOf(bus, service), counts }
    }),
  )
  const told = all.flatMap(({ service, counts }) => counts.map((count) => ({ service, ...count })))
  const secrets = told.filter((one, n) => !told.slice(0, n).some((other) => isSame(one, other)))
  const rings = all.flatMap((one) => one.rings)
  const needed = new Set([...secrets.map(({ key }) => key), ...rings.map(([current]) => current)])
  return {
    instances: Object.fromEntries(all.map((one) => [one.service, one.rings])) as Standing['instances'],
    secrets,
    removable: [...new Set(rings.flat())].filter((key) => !needed.has(key)),
  }
}

/** Of the answers in the schema `idempotency` all tell who share its database. */
const isSame = (one: SealedCount, other: SealedCount) =>
  one.table === other.table && one.key === other.key && one.state === other.state && one.count === other.count

/** What was left is looked for again: a row that was locked, or a change that was on its way. */
const rounds = 3

/** Seals everything again that an older key sealed. To be repeated at will, after an interruption too. */
export async function resealSecrets(bus: Bus, requestId: string, say: (line: string) => void) {
  let standing = await countSecrets(bus, requestId)
  const current = currentOf(standing)
  let resealed = 0
  let unopened = 0
  for (let round = 0; round < rounds && hasOld(standing); round++) {
    unopened = 0
    for (const service of names) {
      let after: Place | null = null
      do {
        const batch = await resealBatch(bus, service, { current, after }, requestId)
        const { next } = batch
        resealed += batch.resealed
        unopened += batch.unopened
        if (next) say(`${service}: ${next.table}: ${batch.resealed} of key ${next.key} sealed again`)
        after = next
      } while (after !== null)
    }
    standing = await countSecrets(bus, requestId)
  }
  return { current, resealed, unopened, ...standing }
}

function resealBatch(bus: Bus, service: Sealing, body: { current: string; after: Place | null }, requestId: string) {
  return call(bus, sealing[service].resealSecrets, { body }, systemCaller('', requestId))
}

const hasOld = ({ secrets }: Standing) => secrets.some(({ state }) => state === 'old')

/** With two keys that seal, they would seal against each other. */
function currentOf({ instances }: Standing): string {
  const all = names.flatMap((service) => instances[service].map(([current = '']) => ({ service, current })))
  const silent = names.find((service) => instances[service].length === 0)
  if (silent) throw new Error(`No instance of ${silent} says which keys it has.`)
  const [first] = all
  const other = all.find(({ current }) => current !== first?.current)
  if (!first || other) {
    throw new Error(
      `${first?.service} seals with the key "${first?.current}", ${other?.service} with "${other?.current}". ` +
        'Give all instances the same SEAL_KEYS, and restart them, first.',
    )
  }
  return first.current
}

const Info = z.object({ metadata: z.object({ seal_keys: z.string() }).partial().nullish() })
/** After the first answer the others come within a moment. */
const quietMs = 300
const longestMs = 3_000

/** The keys of every instance of a service, as the NATS services API tells of them. */
async function ringsOf({ nc }: Pick<Bus, 'nc'>, service: Sealing): Promise<string[][]> {
  // Not the client's own ids, which whoever has seen one can tell ahead (docs/decisions/0007).
  const inbox = `${inboxOf('deploy')}.${randomBytes(16).toString('base64url')}`
  const rings: string[][] = []
  const { promise: quiet, resolve } = Promise.withResolvers<void>()
  let timer = setTimeout(resolve, longestMs)
  const answers = nc.subscribe(inbox, {
    callback: (_, message) => {
      const { data: info } = Info.safeParse(message.data.length > 0 ? message.json() : undefined)
      if (info) rings.push((info.metadata?.seal_keys ?? '').split(','))
      clearTimeout(timer)
      timer = setTimeout(resolve, quietMs)
    },
  })
  nc.publish(`$SRV.INFO.${service}`, undefined, { reply: inbox })
  await quiet
  answers.unsubscribe()
  return rings
}
