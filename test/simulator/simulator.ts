import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import fastify from 'fastify'
import type { App, SimulatorOptions } from './app.ts'
import { createCallbacks } from './callbacks/callbacks.ts'
import { startHandshake } from './callbacks/handshake.ts'
import { createSchedule } from './callbacks/schedule.ts'
import { serveControl } from './control/control.ts'
import { createFaults } from './faults.ts'
import { serveGraph } from './graph/graph.ts'
import { createHeld } from './graph/held.ts'
import { createFiles } from './media/files.ts'
import { createMedia } from './media/media.ts'
import { createHistory } from './messages/history.ts'
import { createLimits } from './messages/limits.ts'
import { createPeople } from './messages/people.ts'
import { createDataFile, loadData } from './numbers/data-file.ts'
import { createCodes } from './onboarding/codes.ts'
import { serveDialog } from './onboarding/dialog.ts'
import { createRegistrations } from './onboarding/registrations.ts'
import { createNumbers } from './numbers/numbers.ts'
import { createTemplates } from './templates/templates.ts'
import { createFeed } from './watch/feed.ts'
import { serveWatch } from './watch/serve-watch.ts'
import { createUploads } from './uploads/uploads.ts'
import { createSettings } from './settings.ts'

const bodyLimitBytes = 4 * 1024 * 1024

/** Starts the platform's simulator on a loopback port; `stop` drops what waits and keeps what belongs on the disk. */
export async function startSimulator(options: SimulatorOptions) {
  const http = fastify({ bodyLimit: bodyLimitBytes, forceCloseConnections: 'idle' })
  const url = () => `http://127.0.0.1:${(http.server.address() as AddressInfo).port}`
  const app = await createApp(options, url)
  http.get('/healthz', () => ({ status: 'ok' }))
  await http.register(async (scope) => serveControl(app, scope))
  await http.register(async (scope) => serveDialog(app, scope))
  await http.register(async (scope) => serveWatch(app, scope))
  await http.register(async (scope) => serveGraph(app, scope))
  await http.listen({ host: '127.0.0.1', port: options.port ?? 0 })

  async function stop() {
    app.held.stop()
    // A connection may be busy with the end of an answer that its caller has read already: it is asked again.
    const closing = setInterval(() => http.server.closeIdleConnections(), 20)
    await http.close()
    clearInterval(closing)
    app.schedule.stop()
    await Promise.all([app.handshake.stop(), app.callbacks.stop(), app.dataFile.stop()])
    await app.files.stop()
  }
  return { url: url(), stop }
}

async function createApp(options: SimulatorOptions, url: () => string): Promise<App> {
  const known = await loadData(options.dataFile)
  const settings = createSettings(options.settings)
  const numbers = createNumbers(known.numbers)
  const subscriptions = new Set(known.subscriptions)
  const people = createPeople(known.people)
  const files = createFiles(options.dataFile && join(dirname(options.dataFile), 'simulator-media'))
  const media = createMedia(known.media, files, settings)
  const templates = createTemplates(known)
  const callbacks = createCallbacks(options.callbackUrl, options.appSecret, settings)
  return {
    options,
    settings,
    numbers,
    subscriptions,
    people,
    history: createHistory(),
    limits: createLimits(settings),
    faults: createFaults(),
    held: createHeld(),
    schedule: createSchedule(settings, subscriptions, callbacks.push),
    callbacks,
    codes: createCodes(settings),
    registrations: createRegistrations(),
    syncs: new Set(),
    handshake: startHandshake(options.callbackUrl, options.verifyToken),
    dataFile: createDataFile(options.dataFile, () => ({
      numbers: numbers.all(),
      subscriptions: [...subscriptions],
      people: people.newest(),
      media: media.all(),
      templates: templates.all(),
      deletions: templates.deletions(),
    })),
    files,
    media,
    templates,
    uploads: createUploads(),
    feed: createFeed(),
    url,
  }
}
