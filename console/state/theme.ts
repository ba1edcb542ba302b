// Dark or light: as the system has it, or as the user has chosen. The choice is all that the page stores in the browser.
import { signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'
const key = 'kcp-console-theme'

export const theme = signal<Theme>('system')

export function startTheme(): void {
  const stored = read()
  setTheme(stored === 'light' || stored === 'dark' ? stored : 'system')
}

export function setTheme(value: Theme): void {
  theme.value = value
  if (value === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = value
  try {
    localStorage.setItem(key, value)
  } catch {
    // A browser without storage forgets the choice.
  }
}

export function nextTheme(): void {
  const order: readonly Theme[] = ['system', 'light', 'dark']
  setTheme(order[(order.indexOf(theme.value) + 1) % order.length] ?? 'system')
}

function read(): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}
