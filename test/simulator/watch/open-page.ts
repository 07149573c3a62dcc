import type { Browser } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { open } from '../../browser.ts'

/** A page that shares nothing with another one, for one test, which fails on anything that the page complains of. */
export async function openPage(browser: Browser, url: string) {
  const page = await browser.newPage({ viewport: { width: 1100, height: 800 } })
  onTestFinished(() => page.close())
  return { page, complaints: await open(page, url) }
}
