import { accessSync, constants } from 'node:fs'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

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
  'no browser: the tests of the hosted page are skipped. `apt-get install chromium`, or name one in CHROMIUM.'

export const launch = (): Promise<Browser> =>
  chromium.launch({
    ...(chromiumPath !== undefined && { executablePath: chromiumPath }),
    // Its own sandbox needs a user that is not root.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  })

export interface Visit {
  page: Page
  /** What the page complained of: script errors, and whatever the content security policy refused. */
  complaints: string[]
}

/** A browser of its own, with nothing in it; what it would ask `https://app.example` is answered here. */
export async function visit(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext(options)
  await context.route('https://app.example/**', (route) =>
    route.fulfill({ contentType: 'text/html', body: '<title>App</title><h1>Back in the app</h1>' }),
  )
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (err) => complaints.push(err.message))
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  await page.goto(url)
  return { page, complaints }
}
