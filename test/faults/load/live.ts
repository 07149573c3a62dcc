import type { Arena } from '../nemesis/arena.ts'
import { newHistory } from '../history/history.ts'
import { playPerson, type Person, type Scene } from './person.ts'
import { createPlatform, type Platform } from './platform.ts'
import { startSubscriber, type Subscriber } from './subscriber.ts'
import { type LoadTenant, makeTenants } from './tenants.ts'

interface Life {
  seed?: number
  /** At each of the two numbers. */
  peopleOfNumber?: number
  /** The least time that it lasts. */
  seconds?: number
}

/** What was lived through, and who did it: `settle` judges it. */
export interface Lived {
  scene: Scene
  people: Person[]
}

export interface Living extends Scene {
  /** The first of the organizations. */
  tenant: LoadTenant
  subscriber: Subscriber
}

/** Two organizations at work, while something is done to them and as long. The subscriber is closed by the caller. */
export async function live(
  { stack }: Pick<Arena, 'stack'>,
  { seed = 1, peopleOfNumber = 3, seconds = 0 }: Life,
  harm: (living: Living) => Promise<void>,
): Promise<Lived & { subscriber: Subscriber; platform: Platform }> {
  const history = newHistory()
  const subscriber = await startSubscriber(history)
  const platform = createPlatform(stack.read().simulator_url)
  const tenants = await makeTenants({ stack, history, platform, subscriber }, 2, 1)
  const [tenant] = tenants
  if (!tenant) throw new Error('There is no tenant.')
  const endsAt = Date.now() + seconds * 1_000
  let isHarmed = false
  const scene: Scene = { seed, history, platform, tenants, isOver: () => isHarmed && Date.now() > endsAt }
  const harming = harm({ ...scene, tenant, subscriber }).finally(() => (isHarmed = true))
  const numbers = Array.from({ length: peopleOfNumber }, (_, n) => n)
  const playing = tenants.flatMap((one) => numbers.map((n) => playPerson(scene, one, one.phones[0] ?? '', n)))
  const [people] = await Promise.all([Promise.all(playing), harming])
  return { scene, people, subscriber, platform }
}
