import type { FastifyInstance } from 'fastify'
import type { App } from '../app.ts'
import { SettingsChange } from '../settings.ts'
import { parseBody } from './parse.ts'

/** Changes how the simulator behaves; what a body does not name stays. Every answer is what is in force then. */
export function controlSettings({ settings }: App, http: FastifyInstance) {
  http.get('/control/settings', () => settings.current)
  http.post('/control/settings', (request) => {
    settings.change(parseBody(SettingsChange, request.body))
    return settings.current
  })
  http.delete('/control/settings', () => {
    settings.reset()
    return settings.current
  })
}
