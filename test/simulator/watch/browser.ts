import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { onTestFinished } from 'vitest'

const places = [
  process.env['CHROMIUM'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** A browser of this machine, if it has one. */
export const chromiumPath = places.find((place) => place !== undefined && existsSync(place))

/** A headless browser for the tests of a file. The sandbox does not work for root in a container; the page is our own. */
export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: chromiumPath ?? '', args: ['--no-sandbox'] })

/** A page that shares nothing with another one, for one test, which fails on anything that the page complains of. */
export async function openPage(browser: Browser, url: string) {
  const page = await browser.newPage({ viewport: { width: 1100, height: 800 } })
  onTestFinished(() => page.close())
  const complaints: string[] = []
  page.on('pageerror', (err) => complaints.push(err.message))
  page.on('console', (line) => {
    if (line.type() === 'error') complaints.push(line.text())
  })
  await page.goto(url)
  return { page, complaints }
}
