import { setTimeout as sleep } from 'node:timers/promises'
import { Problem } from '@app/shared/api/problem.ts'
import type { Core } from '../app.ts'
import { readTemplates, type UpstreamTemplate } from '../upstream/templates.ts'
import { askAbout } from './ask-about.ts'
import type { TemplateAccount } from './templates.ts'

/** What a sync came to. */
interface SyncCounts {
  created: number
  updated: number
  synced: number
}

type Found = readonly UpstreamTemplate[]
type Account = TemplateAccount & { token: string }
/** `hasCaller`: he waits for the counts. */
type Store = (found: Found, hasCaller: boolean) => Promise<SyncCounts>

/** Some thousands of templates, page by page, at a platform that takes a second for each. */
export const readWithinMs = 300_000
/** How long the counts of a reading that outlasted its caller wait for the next one. */
const keptMs = 60_000

/**
 * Readings of all templates of a business account. A large one takes longer than a caller waits: it goes on, is stored
 * without him, and who asks this process next waits for it and has its counts, instead of beginning another one that would end as
 * early. Another instance reads anew.
 */
export interface Readings {
  /**
   * Reads what the platform has now, until the deadline (performance.now), and stores it; or answers the counts of a reading that was
   * stored without its caller.
   */
  read: (core: Core, account: Account, deadline: number, store: Store) => Promise<SyncCounts>
  stop: () => Promise<void>
}

export function createReadings(): Readings {
  const left = new Map<string, Promise<SyncCounts>>()
  const stopping = new AbortController()

  function leave(core: Core, account: Account, key: string, stored: Promise<SyncCounts>) {
    const forget = () => left.get(key) === stored && left.delete(key)
    const { organizationId: organization, businessAccountId: businessAccount } = account
    left.set(key, stored)
    stored.then(
      (counts) => {
        core.log.info({ organization, businessAccount, ...counts }, 'templates read without a caller')
        setTimeout(forget, keptMs).unref()
      },
      (err: unknown) => {
        core.log.warn({ err, organization, businessAccount }, 'templates')
        forget()
      },
    )
  }

  return {
    async read(core, account, deadline, store) {
      const key = `${account.organizationId}:${account.businessAccountId}`
      const before = left.get(key)
      if (before) {
        const counts = await inTime(before, deadline)
        left.delete(key)
        return counts
      }
      const storeAlone = (found: Found) => store(found, false)
      const own = new AbortController()
      const asking = { ...account, deadline: performance.now() + readWithinMs }
      const signal = AbortSignal.any([own.signal, stopping.signal])
      const reading = askAbout(core, asking, () => readTemplates(core.upstream, { ...asking, signal }))
      const found = await inTime(reading, deadline).catch((err: unknown) => {
        if (!(err instanceof TakesLonger)) throw err
        if (left.has(key)) own.abort()
        else leave(core, account, key, reading.then(storeAlone))
        throw err
      })
      return store(found, true)
    },
    async stop() {
      stopping.abort()
      await Promise.allSettled(left.values())
    },
  }
}

class TakesLonger extends Problem {
  constructor() {
    const message =
      'Reading all templates takes longer than one answer may. It goes on, and what it finds is taken over: sync again in a minute.'
    super('upstream_unavailable', { message })
  }
}

async function inTime<T>(reading: Promise<T>, deadline: number): Promise<T> {
  const timer = new AbortController()
  const late = sleep(Math.max(0, deadline - performance.now()), undefined, { signal: timer.signal })
  try {
    return await Promise.race([
      reading,
      late.then((): never => {
        throw new TakesLonger()
      }),
    ])
  } finally {
    timer.abort()
    late.catch(() => {})
    reading.catch(() => {})
  }
}
