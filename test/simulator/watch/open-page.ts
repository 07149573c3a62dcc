import type { Browser } from 'playwright-core'
import { onTestFinished } from 'vitest'

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
