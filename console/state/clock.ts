// The present, for ages: one timer for all of the page, which stops while the page is hidden.
import { signal } from '@preact/signals'

export const now = signal(Date.now())

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === 'visible') now.value = Date.now()
  }, 1000)
}
