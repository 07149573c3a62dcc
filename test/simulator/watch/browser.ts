import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { onTestFinished } from 'vitest'

const places = [
  process.env['CHROMIUM_PATH'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** A browser of this machine, if it has one. */
export const chromiumPath = places.find((place) => place !== undefined && existsSync(place))

/** A page of a headless browser, for one test, which fails on anything that the page complains of. */
export async function openPage(url: string) {
  // The sandbox does not work for root in a container; the page is our own.
  const browser = await chromium.launch({ executablePath: chromiumPath ?? '', args: ['--no-sandbox'] })
  onTestFinished(() => browser.close())
  const page = await browser.newPage({ viewport: { width: 1100, height: 800 } })
  const complaints: string[] = []
  page.on('pageerror', (err) => complaints.push(err.message))
  page.on('console', (line) => {
    if (line.type() === 'error') complaints.push(line.text())
  })
  await page.goto(url)
  return { page, complaints }
}
