// The keyboard: `/` filters, `g` and a letter goes, `?` helps, and pages add keys of their own.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

export interface KeyAction {
  readonly help: string
  readonly run: () => void
}
/** By key, such as `y`, or by two keys in a row, such as `g c`. */
export type KeyMap = Readonly<Record<string, KeyAction>>

/** The maps in force; the map that was added last wins. */
export const keyMaps = signal<readonly KeyMap[]>([])
let prefix = ''
let prefixTimer: ReturnType<typeof setTimeout> | undefined

/** The keys of a part of the page while it is shown. `map` must not change between renderings without `inputs`. */
export function useKeys(map: KeyMap, inputs: readonly unknown[] = []): void {
  useEffect(() => {
    keyMaps.value = [...keyMaps.value, map]
    return () => {
      keyMaps.value = keyMaps.value.filter((one) => one !== map)
    }
  }, inputs)
}

export function startKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
    if (isTyping(event.target) || document.querySelector('dialog[open]') !== null) return
    if (press(event.key)) event.preventDefault()
  })
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.isContentEditable || target.matches('input, textarea, select') || target.closest('.xterm') !== null
}

/** Runs the action of the key, or of the two last keys. Returns false if there is none. */
function press(key: string): boolean {
  const wanted = prefix === '' ? key : `${prefix} ${key}`
  const action = actionOf(wanted)
  const isPrefix =
    prefix === '' && keyMaps.value.some((map) => Object.keys(map).some((one) => one.startsWith(`${key} `)))
  clearTimeout(prefixTimer)
  prefix = isPrefix ? key : ''
  if (isPrefix) prefixTimer = setTimeout(() => (prefix = ''), 1500)
  action?.run()
  return action !== undefined || isPrefix
}

function actionOf(key: string): KeyAction | undefined {
  for (const map of keyMaps.value.toReversed()) if (Object.hasOwn(map, key)) return map[key]
  return undefined
}
