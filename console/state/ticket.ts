// The ticket with which `kcp console` opens the page: in the fragment, which no server and no referrer sees.

/** The ticket of a fragment such as `#ticket=...`; undefined if there is none. */
export function ticketOf(fragment: string): string | undefined {
  const ticket = new URLSearchParams(fragment.replace(/^#/, '')).get('ticket')
  return ticket === null || ticket === '' ? undefined : ticket
}

/** Takes the ticket out of the URL of the window, and of its history, before anything else can read it. */
export function takeTicket(): string | undefined {
  const ticket = ticketOf(location.hash)
  if (ticket !== undefined) history.replaceState(null, '', location.pathname)
  return ticket
}
