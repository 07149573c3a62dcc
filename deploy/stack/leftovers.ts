import { isClaim } from '../processes/claim.ts'
import { recordedNames, stopRecorded } from '../processes/records.ts'

const isServer = (name: string) => ['postgres', 'redis', 'nats'].includes(name)
const graceMs = 3_000

/** Ends what an earlier stack of this data folder left behind when it was killed; the servers last. */
export async function stopLeftovers(dataDir: string): Promise<void> {
  const names = recordedNames(dataDir).filter((name) => !isClaim(name))
  const stop = (name: string) => stopRecorded(dataDir, name, graceMs)
  await Promise.all(names.filter((name) => !isServer(name)).map(stop))
  await Promise.all(names.filter(isServer).map(stop))
}
