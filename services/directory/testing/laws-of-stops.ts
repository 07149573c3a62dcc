import { Problem } from '@app/shared/api/problem.ts'
import type { Person, World } from './random-world.ts'

/**
 * Who stopped last gets no marketing under any name, also when the contact was deleted and made anew. Who resumed last gets it, where
 * none was deleted: a stop outlives its contact, a word that takes it back may not.
 */
export async function wrongStops(world: World, isAnyDeleted: boolean): Promise<string[]> {
  const found: string[] = []
  for (const person of world.people.filter(({ laterPhone }) => laterPhone === null)) {
    const last = world.words.get(person)?.at(-1)?.value
    for (const [name, isStopped] of await stoppedNames(world, person)) {
      if (last === 'stop' && !isStopped) found.push(`${name} stopped, and gets marketing`)
      if (last !== 'stop' && isStopped && !isAnyDeleted) found.push(`${name} resumed, and gets no marketing`)
    }
  }
  return found
}

/** They write once more under all their names, so that the contact is one. */
async function stoppedNames({ instances }: World, { phone, waId, bsuid }: Person) {
  const [one] = instances
  await one?.inbound({ wa_id: waId, bsuid })
  await one?.inbound({ wa_id: phone, bsuid })
  const recipients = [{ phone_number: `+${phone}` }, { phone_number: `+${waId}` }, { bsuid }]
  return Promise.all(
    recipients.map(async (recipient): Promise<[name: string, isStopped: boolean]> => {
      const isStopped = await one?.open(recipient, { marketing: true }).then(() => false, isOptedOut)
      return [JSON.stringify(recipient), isStopped ?? false]
    }),
  )
}

function isOptedOut(err: unknown) {
  if (err instanceof Problem && err.failure === 'marketing_opted_out') return true
  throw err
}
