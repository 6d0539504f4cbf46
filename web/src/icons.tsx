// SPDX-License-Identifier: Apache-2.0
// Line icons on a grid of 16; they say nothing that the text beside them does not.

const paths = {
  overview: 'M2 9.5h4V14H2zM6 2h4v12H6zM10 6h4v8h-4z',
  instances: 'M2 4h12M2 8h12M2 12h12',
  feed: 'M1.5 8h3l2-5 3 10 2-5h3',
  timers: 'M8 14A5.5 5.5 0 1 0 8 3a5.5 5.5 0 0 0 0 11zM8 5.5v3l2 1.2M6.5 1h3',
  pools: 'M2 2.5h5v5H2zM9 2.5h5v5H9zM2 9.5h5v4H2zM9 9.5h5v4H9z',
  runs: 'M2 3.500h7M5 8h8M3.500 12.500h6',
  queues: 'M3.500 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM8.500 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM12.500 5.500l2 2.500-2 2.500',
  check: 'M3.500 8.500l3 3 6-7',
  machine: 'M4 6a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM12 14a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM4 6v2a4 4 0 0 0 4 4h2',
  page: 'M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3',
  users: 'M6 7.5a2.8 2.8 0 1 0 0-5.5 2.8 2.8 0 0 0 0 5.500zM1 14c0-2.800 2.200-4.500 5-4.500s5 1.700 5 4.500M10.500 2.300a2.800 2.800 0 0 1 0 5M12.500 9.900c1.500.7 2.500 2.100 2.500 4.100',
  tokens: 'M5.500 13.500a3 3 0 1 1 2.300-4.900L14 2.500M11.500 5l2 2M9.500 7l1.500 1.500',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  moon: 'M13.500 9.500A6 6 0 0 1 6.500 2.500a6 6 0 1 0 7 7z',
  auto: 'M2 3h12v8H2zM6 14h4M8 11v3',
  logout: 'M6 2.500H2.500v11H6M10 5l3 3-3 3M13 8H6',
  menu: 'M2 4h12M2 8h12M2 12h12',
  close: 'M3.500 3.500l9 9M12.500 3.500l-9 9',
  plus: 'M8 3v10M3 8h10',
  pause: 'M5.500 3v10M10.500 3v10',
  play: 'M5 3l8 5-8 5z',
  arrow: 'M3 8h10M9.500 4.500L13 8l-3.500 3.500',
  warning: 'M8 2L1.500 13.500h13zM8 6.500v3.500M8 11.800v.2',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.500 10.500L14 14',
  loop: 'M13 8a5 5 0 1 1-1.600-3.700M13 2v3h-3',
  lock: 'M3.500 7h9v7h-9zM5.500 7V5a2.500 2.500 0 0 1 5 0v2',
  copy: 'M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}
