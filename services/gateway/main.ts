import { publicUrl, listening, readEnv } from '@app/shared/service/environment.ts'
import { markReady, start } from '@app/shared/service/start.ts'
import { stopInOrder } from '@app/shared/service/stop.ts'
import { createStore, storeFault, storeSettings } from '@app/shared/store/store.ts'
import { z } from 'zod'
import { createApp } from './app.ts'
import { contractModules } from './contracts.ts'
import { buildHttp } from './http.ts'
import { budgetsIn, connectRedis, redisUrl } from './limits/rate-lease.ts'
import { routeSetup } from './onboarding/route-setup.ts'
import { createSignup, signupSettings } from './onboarding/signup-settings.ts'
import { routeMedia } from './media/serve-media.ts'
import { prepareStop } from './stop-listening.ts'
import { openapi } from './openapi/openapi.ts'
import { routeUpstreamCallbacks } from './upstream-callback.ts'

const env = readEnv(
  {
    PORT: z.coerce.number().int().min(0).max(65_535).default(8080),
    HOST: z.string().default('127.0.0.1'),
    REDIS_URL: redisUrl,
    PUBLIC_URL: publicUrl,
    /** How many proxies stand before the gateway: the client's address is taken that many places from the right. */
    TRUST_PROXY: z.coerce.number().int().min(0).default(0),
    UPSTREAM_APP_SECRET: z.string().min(1),
    UPSTREAM_VERIFY_TOKEN: z.string().min(1),
    ...signupSettings,
    ...storeSettings,
  },
  storeFault,
)
const store = createStore(env)
const service = await start('gateway', env)
const redis = connectRedis(env.REDIS_URL, service.log)
const app = createApp(service, { budgets: budgetsIn(redis), store, trustedProxies: env.TRUST_PROXY })

const modules = Object.values(contractModules)
const http = await buildHttp(app, modules, openapi(modules, env.PUBLIC_URL))
routeMedia(http, app)
routeUpstreamCallbacks(http, app, { appSecret: env.UPSTREAM_APP_SECRET, verifyToken: env.UPSTREAM_VERIFY_TOKEN })
routeSetup(http, app, createSignup(env, env.PUBLIC_URL))
const stopListening = prepareStop(http, app)
const url = await listening('HOST and PORT', http.listen({ host: env.HOST, port: env.PORT }))
app.log.info({ url }, 'listening')

stopInOrder(app, [
  stopListening,
  app.apiLog.stop,
  store.close,
  () => redis.disconnect(),
  () => app.nc.drain(),
  app.probes.close,
])
await markReady(app)
