import { apiVersion, appId, httpUrl, origins } from '@app/shared/service/environment.ts'
import { z } from 'zod'

/** The platform's signup dialog in the environment. */
export const signupSettings = {
  UPSTREAM_APP_ID: appId,
  /** Of "Facebook Login for Business"; without one, the page says that nothing can be connected yet. */
  UPSTREAM_SIGNUP_CONFIG_ID: z.string().min(1).optional(),
  /** The platform's SDK, a script with `FB.login`. */
  UPSTREAM_DIALOG_URL: httpUrl.default('https://connect.facebook.net/en_US/sdk.js'),
  /** Whose windows and messages the page takes for the dialog's. */
  UPSTREAM_DIALOG_ORIGINS: origins.default(['https://www.facebook.com', 'https://web.facebook.com']),
  /** What `FB.login` gets as `extras`, as JSON: the version of the flow and its features. */
  UPSTREAM_SIGNUP_EXTRAS: z
    .string()
    .refine(isObject, 'must be a JSON object')
    .default('{"version":"v4","sessionInfoVersion":"3","setup":{}}'),
  UPSTREAM_API_VERSION: apiVersion,
}

function isObject(text: string) {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** What the page needs to open the dialog. */
export interface Signup {
  appId: string
  configId: string | undefined
  scriptUrl: string
  origins: string[]
  extras: string
  apiVersion: string
  /** Whether visitors come over https: then the cookie is for that alone. */
  isSecure: boolean
  /** The path that visitors see above `/setup`, if any. */
  root: string
}

export const createSignup = (env: z.output<z.ZodObject<typeof signupSettings>>, publicUrl: string): Signup => ({
  appId: env.UPSTREAM_APP_ID,
  configId: env.UPSTREAM_SIGNUP_CONFIG_ID,
  scriptUrl: env.UPSTREAM_DIALOG_URL,
  origins: env.UPSTREAM_DIALOG_ORIGINS,
  extras: env.UPSTREAM_SIGNUP_EXTRAS,
  apiVersion: env.UPSTREAM_API_VERSION,
  isSecure: new URL(publicUrl).protocol === 'https:',
  root: new URL(publicUrl).pathname.replace(/\/$/, ''),
})
