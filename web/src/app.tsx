// SPDX-License-Identifier: Apache-2.0
// The frame around every page: who is logged in, where one is, where one can go.
import type { ComponentChild } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Problem, call, identity, may } from './api';
import { count } from './format';
import { Icon, type IconName } from './icons';
import { beginLooking, flows, learnIdentity, loadStructure, machines, reachable, stats, systems } from './live';
import { AccountPage } from './pages/account';
import { FeedPage } from './pages/feed';
import { InstancePage } from './pages/instance';
import { InstancesPage } from './pages/instances';
import { LoginPage, PasswordPage } from './pages/login';
import { MachinePage } from './pages/machine';
import { OverviewPage } from './pages/overview';
import { PoolsPage } from './pages/pools';
import { QueuesPage } from './pages/queues';
import { RunPage } from './pages/run';
import { RunsPage } from './pages/runs';
import { SystemPage } from './pages/system';
import { TimersPage } from './pages/timers';
import { TokensPage } from './pages/tokens';
import { UsersPage } from './pages/users';
import { Link, go, match, usePlace } from './router';
import { useStore } from './store';
import { setTheme, theme, type Theme } from './theme';
import { Empty, Heading, Refusal, Skeleton } from './ui';

type Parameters = Record<string, string>;

const pages: [string, (given: Parameters) => ComponentChild][] = [
  ['/', () => <OverviewPage />],
  ['/login', () => <OverviewPage />],
  ['/machines/:machine', ({ machine = '' }) => <MachinePage key={machine} name={machine} />],
  ['/instances', () => <InstancesPage />],
  ['/instances/:machine/:key', ({ machine = '', key = '' }) => <InstancePage key={`${machine} ${key}`} machine={machine} name={key} />],
  ['/runs', () => <RunsPage />],
  ['/runs/:flow/:id', ({ flow = '', id = '' }) => <RunPage key={`${flow} ${id}`} flow={flow} id={id} />],
  ['/queues', () => <QueuesPage />],
  ['/feed', () => <FeedPage />],
  ['/timers', () => <TimersPage />],
  ['/pools', () => <PoolsPage />],
  ['/users', () => <UsersPage />],
  ['/tokens', () => <TokensPage />],
  ['/account', () => <AccountPage />],
  ['/systems/:system', ({ system = '' }) => <SystemPage key={system} name={system} />],
];

function pageAt(path: string): ComponentChild {
  for (const [pattern, show] of pages) {
    const given = match(pattern, path);
    if (given) return show(given);
  }
  return (
    <>
      <Heading title="Nothing here" />
      <Empty icon="search" title={`There is no page ${path}`}>
        <Link to="/">Go to the overview</Link>
      </Empty>
    </>
  );
}

function NavLink(props: { to: string; icon: IconName; text: string; aside?: string | undefined }) {
  const { path } = usePlace();
  const current = props.to === '/' ? path === '/' : path === props.to || path.startsWith(`${props.to}/`);
  const place = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (current) place.current?.scrollIntoView({ block: 'nearest' });
  }, [current]);
  return (
    <li ref={place}>
      <Link to={props.to} aria-current={current ? 'page' : undefined}>
        <Icon name={props.icon} />
        <span class="nav-text" title={props.text}>{props.text}</span>
        {props.aside !== undefined && <span class="nav-aside">{props.aside}</span>}
      </Link>
    </li>
  );
}

function running(name: string): string | undefined {
  const definition = machines.get()?.find((machine) => machine.name === name)?.definition;
  const counts = stats.get()?.counts[name];
  if (!definition || !counts) return undefined;
  return count(definition.states.reduce((sum, state) => sum + (state.terminal ? 0 : (counts[state.name] ?? 0)), 0));
}

function MachineLinks({ title, names }: { title: string; names: string[] | undefined }) {
  useStore(stats);
  if (!names?.length) return null;
  return (
    <>
      <h2>{title}</h2>
      <ul>
        {names.map((name) => (
          <NavLink key={name} to={`/machines/${encodeURIComponent(name)}`} icon="machine" text={name} aside={running(name)} />
        ))}
      </ul>
    </>
  );
}

function Navigation() {
  const names = useStore(machines)?.map(({ name }) => name);
  const ofFlows = new Set(useStore(flows)?.map(({ name }) => name));
  const brought = useStore(systems)?.filter((system) => system.page);
  return (
    <nav id="navigation" aria-label="Pages">
      <ul>
        <NavLink to="/" icon="overview" text="Overview" />
        <NavLink to="/instances" icon="instances" text="Instances" />
        <NavLink to="/runs" icon="runs" text="Runs" />
        <NavLink to="/queues" icon="queues" text="Queues" />
        <NavLink to="/feed" icon="feed" text="Live feed" />
        <NavLink to="/timers" icon="timers" text="Timers" />
        <NavLink to="/pools" icon="pools" text="Permit pools" />
      </ul>
      {brought && brought.length > 0 && (
        <>
          <h2>Systems</h2>
          <ul>
            {brought.map(({ name, page }) => (
              <NavLink key={name} to={`/systems/${encodeURIComponent(name)}`} icon="page" text={page?.title ?? name} />
            ))}
          </ul>
        </>
      )}
      {may('admin') && identity.get()?.csrf && (
        <>
          <h2>Administration</h2>
          <ul>
            <NavLink to="/users" icon="users" text="Users" />
            <NavLink to="/tokens" icon="tokens" text="Tokens" />
          </ul>
        </>
      )}
      {/* Last, because there may be many. */}
      <MachineLinks title="Machines" names={names?.filter((name) => !ofFlows.has(name))} />
      <MachineLinks title="Flows" names={names?.filter((name) => ofFlows.has(name))} />
    </nav>
  );
}

const themes: [Theme, IconName, string][] = [
  ['auto', 'auto', 'as the system'],
  ['light', 'sun', 'light'],
  ['dark', 'moon', 'dark'],
];

function ThemeButton() {
  const current = useStore(theme);
  const index = themes.findIndex(([value]) => value === current);
  const [, icon, text] = themes[index] ?? ['auto', 'auto' as IconName, ''];
  const next = themes[(index + 1) % themes.length]?.[0] ?? 'auto';
  return (
    <button type="button" class="plain icon-button" title={`Colours: ${text}`} aria-label={`Colours: ${text}. Change`} onClick={() => setTheme(next)}>
      <Icon name={icon} />
    </button>
  );
}

async function logOut(): Promise<void> {
  await call('POST', '/v1/logout');
  identity.set(null);
  go('/');
}

function Who() {
  const known = useStore(identity);
  if (!known) return null;
  return (
    <div class="who">
      {known.csrf ? (
        <Link to="/account" class="who-name" title="Your account">
          <strong>{known.user}</strong>
          <span class="quiet">{known.role}</span>
        </Link>
      ) : (
        <span class="who-name" title="This server runs without authentication">
          <strong>{known.user}</strong>
          <span class="quiet">{known.role}, no login</span>
        </span>
      )}
      <ThemeButton />
      {known.csrf && (
        <button type="button" class="plain icon-button" title="Log out" aria-label="Log out" onClick={() => void logOut()}>
          <Icon name="logout" />
        </button>
      )}
    </div>
  );
}

export function Logo() {
  return (
    <Link to="/" class="logo" aria-label="Pawl, overview">
      <svg viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" />
        <path d="M9 23V9h8.200a5.300 5.300 0 0 1 0 10.600H13" />
        <circle cx="23" cy="23" r="2.400" />
      </svg>
      Pawl
    </Link>
  );
}

function Shell() {
  const { path, whole } = usePlace();
  const [open, setOpen] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const live = useStore(reachable);
  // Before it is painted: no page is shown behind the menu that led to it.
  useLayoutEffect(() => setOpen(false), [whole]);
  useEffect(() => {
    beginLooking();
    loadStructure().catch((failure: Problem) => setProblem(failure));
  }, []);
  return (
    <div class={`shell ${open ? 'open' : ''}`}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <aside class="side">
        <div class="side-head">
          <Logo />
          <span class={`pulse ${live ? '' : 'lost'}`} role="status">
            {live ? 'live' : 'reconnecting'}
          </span>
          <button type="button" class="plain icon-button menu" aria-expanded={open} aria-controls="navigation" aria-label="Menu" onClick={() => setOpen(!open)}>
            <Icon name={open ? 'close' : 'menu'} />
          </button>
        </div>
        <div class="side-body">
          <Navigation />
          <Who />
        </div>
      </aside>
      <main id="main" tabIndex={-1}>
        {problem && <Refusal problem={problem} />}
        {pageAt(path)}
      </main>
    </div>
  );
}

export function App() {
  const known = useStore(identity);
  const [problem, setProblem] = useState<Problem>();
  const learn = () => {
    setProblem(undefined);
    learnIdentity().catch((failure: Problem) => setProblem(failure));
  };
  useEffect(learn, []);
  if (problem) {
    return (
      <div class="centre">
        <Refusal problem={problem}>
          <button type="button" onClick={learn}>
            Try again
          </button>
        </Refusal>
      </div>
    );
  }
  if (known === undefined) return <div class="centre">{<Skeleton lines={3} />}</div>;
  if (known === null) return <LoginPage />;
  if (known.role === 'anyone') return <PasswordPage user={known.user} />;
  return <Shell />;
}
