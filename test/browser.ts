import { accessSync, constants } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'

/** The shell has the same engine without windows, and takes half of the time. */
const places = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** Where the machine has a Chromium; `CHROMIUM` names another place. */
export const chromiumPath = [process.env['CHROMIUM'] ?? '', ...places].find(isProgram)

function isProgram(path: string) {
  try {
    accessSync(path, constants.X_OK)
    return path !== ''
  } catch {
    return false
  }
}

export const whyNoBrowser =
  'no browser: the tests of pages are skipped. `apt-get install chromium-headless-shell`, or name a Chromium in CHROMIUM.'

export const launch = (): Promise<Browser> =>
  chromium.launch({
    ...(chromiumPath !== undefined && { executablePath: chromiumPath }),
    // Its own sandbox needs a user that is not root.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  })

/** Opens the address in the page. What the page complains of is put into the list: script errors, and what its own policy refused. */
export async function open(page: Page, url: string): Promise<string[]> {
  const complaints: string[] = []
  page.on('pageerror', (err) => complaints.push(err.message))
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  await page.goto(url)
  return complaints
}
