import type { ServiceMsg } from 'nats'
import { watchAbsence } from './absence.ts'
import { type AnyHandler, answer, respondProblem, type Served } from './answer.ts'
import { type CallHeader, readCall } from './call-header.ts'
import { type Handlers, isRpc } from '../api/contract.ts'
import { createInWork } from './in-work.ts'
import { isInbox } from './inbox.ts'
import { createListsInTurn, type ListsInTurn } from './lists-in-turn.ts'
import { tellInWork } from './lost-questions.ts'
import { durations } from '../metrics/registered.ts'
import { Problem } from '../api/problem.ts'
import type { Service } from '../service/service.ts'
import { createReadInTurn } from './read-in-turn.ts'
import { createSoon } from '../work/soon.ts'

export interface Serving {
  /** Takes no more questions, then waits for those in work. */
  stop: () => Promise<void>
}

/**
 * Serves every operation (Rpc) of a contract module through the NATS services API: each request goes to one instance of the service.
 * `nats micro info` shows the ids of the keys of each instance, since all should have the same.
 */
export async function serve<App extends Served, M extends object>(
  app: App,
  contracts: M,
  handlers: Handlers<App, M>,
): Promise<Serving> {
  const service = await addService(app)
  const soon = createSoon()
  const served = timesOf(app)
  /** Where each answer goes: the same for two tries of one question. */
  const work = new Map<Promise<void>, string>()
  const inWork = createInWork()
  const readInTurn = createReadInTurn()
  const absence = watchAbsence(app.nc)
  const stopTelling = tellInWork(app.nc, app.name, () => new Set(work.values()))

  for (const [name, contract] of Object.entries(contracts)) {
    if (!isRpc(contract)) continue
    const handler = handlers[name as keyof typeof handlers] as unknown as AnyHandler
    const listInTurn: ListsInTurn = contract.list && contract.http ? createListsInTurn() : atOnce
    const turns = { readInTurn, listInTurn }
    const run = (message: ServiceMsg, call: CallHeader | undefined) =>
      answer(app, contract, handler, { message, call, lateMs: absence.lateMs(), ...turns }, soon).then((took) => {
        served.observe({ subject: contract.subject, outcome: took.outcome }, took.durationMs / 1_000)
      })
    service.addEndpoint(contract.subject.slice('rpc.'.length).replaceAll('.', '_'), {
      subject: contract.subject,
      handler: (err, message) => {
        if (err) return app.log.error({ err, subject: contract.subject }, 'rpc')
        // The stream can be told to send events to any address; one that was led here is no question.
        if (message.subject !== contract.subject || !isInbox(message.reply)) return
        const call = readable(message)
        const end = inWork.begin(call?.organization ?? '', message.data.length)
        if (!end) {
          served.observe({ subject: contract.subject, outcome: 'overloaded' }, 0)
          return respondProblem(message, new Problem('service_unavailable'), call?.request ?? '')
        }
        const job = run(message, call).finally(() => {
          end()
          work.delete(job)
        })
        work.set(job, message.reply ?? '')
      },
    })
  }
  // Without it, whoever asks at once may be told that nobody serves. If the bus is cut off now, it is told anew when it is back.
  await app.nc.flush().catch(() => {})
  return {
    async stop() {
      await service.stop()
      await Promise.all(work.keys())
      stopTelling()
      absence.stop()
      await app.nc.flush()
    },
  }
}

const addService = ({ nc, name, sealKeys }: Served) =>
  nc.services.add({
    name,
    version: '1.0.0',
    queue: name,
    metadata: { seal_keys: [...(sealKeys?.byId.keys() ?? [])].join(',') },
  })

const timesOf = ({ probes }: Service) =>
  durations(probes.metrics, {
    name: 'svc_rpc_served_seconds',
    help: "Questions that this process answered, by subject and outcome: ok, or the failure's name.",
    labelNames: ['subject', 'outcome'],
  })

const atOnce: ListsInTurn = (_caller, make) => make()

/** What a question carries; one that carries nothing fails later, where that is told. */
function readable({ headers: carrier }: ServiceMsg): CallHeader | undefined {
  try {
    return readCall(carrier)
  } catch {
    return undefined
  }
}
