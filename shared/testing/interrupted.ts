import type { TestService } from '@app/test/service.ts'
import type { JetStreamManagerOptions, StreamInfo } from 'nats'

/** As a service for whom the other instance comes, at each look at the stream, between its answer and whoever asked. */
export function interrupted(app: TestService, other: (seen: StreamInfo) => Promise<unknown>): TestService {
  const { nc } = app.eventBus
  async function jetstreamManager(options?: JetStreamManagerOptions) {
    const jsm = await nc.jetstreamManager(options)
    const info = jsm.streams.info.bind(jsm.streams)
    jsm.streams.info = async (name) => {
      const found = await info(name)
      await other(found)
      return found
    }
    return jsm
  }
  const slow = new Proxy(nc, {
    get: (_, name) => (name === 'jetstreamManager' ? jetstreamManager : Reflect.get(nc, name)),
  })
  return { ...app, eventBus: { ...app.eventBus, nc: slow } }
}
