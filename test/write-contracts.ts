import { writeFileSync } from 'node:fs'
import { withBus } from '@app/deploy/stack/bus.ts'
import { dataDirOf } from '@app/deploy/stack/options.ts'
import { readBusPlace } from '@app/deploy/stack/stack-file.ts'
import { streamName } from '@app/shared/events/stream.ts'
import { contractsNow, readSnapshot, schemasOf, type Snapshot, snapshotFile } from './contract-snapshot.ts'

// Writes docs/contracts.json as the contracts are now: a step of each release, and of nothing else. Events are taken from
// the local stack if one runs; those that it has not told stay as they were.
//   node deploy/run.mjs test/write-contracts.ts

async function eventsOfStack(): Promise<Snapshot['messages']> {
  const place = readBusPlace(dataDirOf(process.env))
  if (!place) return {}
  return withBus(place, async ({ nc }) => {
    const { streams } = await nc.jetstreamManager()
    const found: Snapshot['messages'] = {}
    for (const [subject, { kind }] of contractsNow) {
      const message =
        kind === 'event' && (await streams.getMessage(streamName, { last_by_subj: subject }).catch(() => null))
      if (message) found[subject] = { event: JSON.parse(Buffer.from(message.data).toString()) }
    }
    return found
  })
}

/** A line for each subject. */
function linesOf(bySubject: object) {
  const lines = Object.entries(bySubject)
    .toSorted(([one], [other]) => one.localeCompare(other))
    .map(([subject, value]) => `${JSON.stringify(subject)}:${JSON.stringify(value)}`)
  return `{\n${lines.join(',\n')}\n}`
}

const examples = [...contractsNow].flatMap(([subject, contract]) =>
  contract.kind === 'rpc' && contract.example ? [[subject, contract.example] as const] : [],
)
const before = readSnapshot()
const messages = { ...before.messages, ...Object.fromEntries(examples), ...(await eventsOfStack()) }
const contracts = Object.fromEntries([...contractsNow].map(([subject, contract]) => [subject, schemasOf(contract)]))
writeFileSync(snapshotFile, `{"contracts":${linesOf(contracts)},\n"messages":${linesOf(messages)}}\n`)
