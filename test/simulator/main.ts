import { z } from 'zod'
import { startSimulator } from './simulator.ts'

const Environment = z.object({
  PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  UPSTREAM_APP_ID: z.string().min(1),
  UPSTREAM_APP_SECRET: z.string().min(1),
  UPSTREAM_VERIFY_TOKEN: z.string().min(1),
  CALLBACK_URL: z.url({ protocol: /^https?$/ }),
  DATA_FILE: z.string().min(1).optional(),
})

const environment = Environment.safeParse(process.env)
if (!environment.success) {
  console.error(z.prettifyError(environment.error))
  process.exit(1)
}

const env = environment.data
const simulator = await startSimulator({
  port: env.PORT,
  appId: env.UPSTREAM_APP_ID,
  appSecret: env.UPSTREAM_APP_SECRET,
  verifyToken: env.UPSTREAM_VERIFY_TOKEN,
  callbackUrl: env.CALLBACK_URL,
  dataFile: env.DATA_FILE,
})

// Ctrl-C reaches the whole group, and a SIGTERM may follow: one stop serves both.
let stopped: Promise<void> | undefined
const stop = () => void (stopped ??= simulator.stop())
process.on('SIGTERM', stop)
process.on('SIGINT', stop)

console.log(JSON.stringify({ url: simulator.url }))
