import * as contracts from '@app/shared/contracts/directory-changes.ts'
import { newId } from '@app/shared/values/ids.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import type { Core } from '../app.ts'

interface Asked {
  subject: string
  body: unknown
}

/** Directory's answers to what callbacks tell of people; what was asked is kept. */
export async function serveDirectoryChanges(core: Core) {
  const asked: Asked[] = []
  /** Nobody is known by these user ids or numbers. */
  const strangers = new Set<string | null>()
  const parties = new Map<string, ReturnType<typeof newParties>>()
  const partiesOf = (name: string) => {
    const known = parties.get(name) ?? newParties(name)
    parties.set(name, known)
    return known
  }
  const serving = await serve({ ...core, name: 'directory' }, contracts, {
    recordPreferences: async (_app, { body }) => {
      asked.push({ subject: 'record-preferences', body })
      return { recorded: body.preferences.length }
    },
    changeIdentity: async (_app, { body }) => {
      asked.push({ subject: 'change-identity', body })
      const name = body.previous.bsuid ?? body.previous.wa_id
      if (name === null || strangers.has(name)) return { conversation: null, contact: null }
      return partiesOf(name)
    },
    importContacts: async (_app, { body }) => {
      asked.push({ subject: 'import-contacts', body })
      return { applied: body.contacts.length }
    },
    importThreads: async (_app, { body }) => {
      asked.push({ subject: 'import-threads', body })
      return { threads: body.threads.map(({ wa_id: waId, bsuid }) => partiesOf(waId ?? bsuid ?? '')) }
    },
  })
  return { asked, strangers, stop: serving.stop }
}

const newParties = (name: string) => ({
  conversation: { id: newId('cnv'), status: 'open' as const, assigned_to: null },
  contact: { id: newId('ctc'), phone_number: `+${name}`, name: 'Ana' },
})
