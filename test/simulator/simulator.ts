import type { AddressInfo } from 'node:net'
import fastify from 'fastify'
import type { App, SimulatorOptions } from './app.ts'
import { createCallbacks } from './callbacks/callbacks.ts'
import { startHandshake } from './callbacks/handshake.ts'
import { createSchedule } from './callbacks/schedule.ts'
import { serveControl } from './control/control.ts'
import { createFaults } from './faults.ts'
import { serveGraph } from './graph/graph.ts'
import { createHeld } from './graph/held.ts'
import { createHistory } from './messages/history.ts'
import { createLimits } from './messages/limits.ts'
import { createPeople } from './messages/people.ts'
import { createDataFile, loadData } from './numbers/data-file.ts'
import { createNumbers } from './numbers/numbers.ts'
import { createSettings } from './settings.ts'

const bodyLimitBytes = 4 * 1024 * 1024

/** Starts the platform's simulator on a loopback port; `stop` drops what waits and keeps what belongs on the disk. */
export async function startSimulator(options: SimulatorOptions) {
  const app = await createApp(options)
  const http = fastify({ bodyLimit: bodyLimitBytes, forceCloseConnections: 'idle' })
  http.get('/healthz', () => ({ status: 'ok' }))
  await http.register(async (scope) => serveControl(app, scope))
  await http.register(async (scope) => serveGraph(app, scope))
  await http.listen({ host: '127.0.0.1', port: options.port ?? 0 })
  const { port } = http.server.address() as AddressInfo

  async function stop() {
    app.held.stop()
    await http.close()
    app.schedule.stop()
    await Promise.all([app.handshake.stop(), app.callbacks.stop(), app.dataFile.stop()])
  }
  return { url: `http://127.0.0.1:${port}`, stop }
}

async function createApp(options: SimulatorOptions): Promise<App> {
  const known = await loadData(options.dataFile)
  const settings = createSettings(options.settings)
  const numbers = createNumbers(known.numbers)
  const people = createPeople(known.people)
  const callbacks = createCallbacks(options.callbackUrl, options.appSecret, settings)
  return {
    options,
    settings,
    numbers,
    people,
    history: createHistory(),
    limits: createLimits(settings),
    faults: createFaults(),
    held: createHeld(),
    schedule: createSchedule(settings, callbacks.push),
    callbacks,
    handshake: startHandshake(options.callbackUrl, options.verifyToken),
    dataFile: createDataFile(options.dataFile, () => ({ numbers: numbers.all(), people: people.newest() })),
  }
}
