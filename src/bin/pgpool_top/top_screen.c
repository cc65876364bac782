/* SPDX-License-Identifier: PostgreSQL
 * top_screen.c: the screen and its keys (ncurses).
 * Runs in: pgpool-top. Each turn asks, draws, and waits for a key or the next turn. */
#include "config.h"

#include "bin/pgpool_top/top.h"

#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_LINES = 3, PAIR_HEAD = 1, PAIR_WRONG = 2 };

struct screen {
    struct top_link *link;
    struct top_table table;
    char summary[320];
    char message[320]; /* the answer to an order */
    int selected;
    int top_row;
    int interval_ms;
    bool is_stopped; /* no new looks, to read what is there */
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void look(struct screen *s)
{
    PGresult *answer;

    top_summary(s->link, s->summary, sizeof s->summary);
    answer = s->link->conn == NULL ? NULL : top_link_ask(s->link, s->table.view->statement);
    if (answer == NULL)
        snprintf(s->message, sizeof s->message, "%s", s->link->error);
    else if (top_table_take(&s->table, answer, now_ms()) == -1)
        snprintf(s->message, sizeof s->message, "the answer to %s is not known here",
            s->table.view->statement);
}

static void show_view(struct screen *s, const struct top_view *view)
{
    top_table_fini(&s->table);
    top_table_init(&s->table, view);
    s->selected = s->top_row = 0;
    s->message[0] = '\0';
    look(s);
}

static void draw_views(const struct screen *s)
{
    int i;

    move(1, 0);
    for (i = 0; i < top_nviews; i++) {
        if (&top_views[i] == s->table.view)
            attron(A_BOLD | A_UNDERLINE);
        printw("%c %s", top_views[i].key, top_views[i].name);
        attroff(A_BOLD | A_UNDERLINE);
        printw("  ");
    }
}

static void draw_row(const struct screen *s, int y, int row)
{
    char cell[TOP_CELL_BYTES];
    const struct top_column *c;
    int x = 0;
    int i;

    for (i = 0; i < s->table.ncolumns && x < COLS; i++) {
        c = &s->table.columns[i];
        if (row == -1)
            snprintf(cell, sizeof cell, "%s%s", c->name,
                i != s->table.sort_column ? ""
                : s->table.is_descending  ? "v"
                                          : "^");
        else
            (void)top_table_cell(&s->table, row, i, cell);
        if ((c->is_number || c->is_rate) && (int)strlen(cell) < c->width)
            mvprintw(y, x + c->width - (int)strlen(cell), "%s", cell);
        else
            mvaddnstr(y, x, cell, COLS - x);
        x += c->width + 2;
    }
}

static void draw(struct screen *s)
{
    int room = LINES - HEAD_LINES - 1;
    int rows = top_table_rows(&s->table);
    int y;

    if (s->selected >= rows)
        s->selected = rows > 0 ? rows - 1 : 0;
    if (s->selected < s->top_row)
        s->top_row = s->selected;
    if (room > 0 && s->selected >= s->top_row + room)
        s->top_row = s->selected - room + 1;
    erase();
    attron(A_BOLD | (strncmp(s->summary, "all is well", 11) == 0 ? 0 : COLOR_PAIR(PAIR_WRONG)));
    mvaddnstr(0, 0, s->summary, COLS);
    attrset(A_NORMAL);
    draw_views(s);
    attron(COLOR_PAIR(PAIR_HEAD));
    mvhline(2, 0, ' ', COLS);
    draw_row(s, 2, -1);
    attrset(A_NORMAL);
    for (y = 0; y < room && s->top_row + y < rows; y++) {
        attrset(s->top_row + y == s->selected ? A_REVERSE : A_NORMAL);
        draw_row(s, HEAD_LINES + y, s->top_row + y);
    }
    attrset(A_NORMAL);
    mvaddnstr(LINES - 1, 0,
        s->message[0] != '\0'
            ? s->message
            : "q quit  1-9 view  < > sort  r turn  arrows select  k kill client  c cancel  "
              "space stop  + - interval",
        COLS);
    refresh();
}

/* The number of the client in the selected row. -1: this view has none. */
static long selected_client(const struct screen *s)
{
    const char *column = strcmp(s->table.view->name, "links") == 0 ? "client_id" : "id";
    char cell[TOP_CELL_BYTES];
    int i;

    if (strcmp(s->table.view->name, "clients") != 0 && strcmp(s->table.view->name, "links") != 0)
        return -1;
    for (i = 0; i < s->table.ncolumns && s->selected < top_table_rows(&s->table); i++) {
        if (strcmp(s->table.columns[i].name, column) == 0 &&
            *top_table_cell(&s->table, s->selected, i, cell) != '\0')
            return strtol(cell, NULL, 10);
    }
    return -1;
}

/* Asks, and then gives the order about the selected client. */
static void order_client(struct screen *s, const char *asked, const char *order, const char *done)
{
    long id = selected_client(s);
    char sql[64];
    PGresult *answer;
    int key;

    if (id == -1) {
        snprintf(s->message, sizeof s->message, "select a client first (views 1 and 5)");
        return;
    }
    snprintf(s->message, sizeof s->message, "%s client %ld? y/n", asked, id);
    draw(s);
    timeout(-1);
    key = getch(); /* a terminal that is gone is no "y" */
    if (key != 'y' && key != 'Y') {
        s->message[0] = '\0';
        return;
    }
    snprintf(sql, sizeof sql, "PGPOOL %s CLIENT %ld", order, id);
    answer = top_link_ask(s->link, sql);
    if (answer == NULL)
        snprintf(s->message, sizeof s->message, "%s", s->link->error);
    else
        snprintf(s->message, sizeof s->message, "client %ld was %s", id, done);
    PQclear(answer);
    look(s);
}

static void change_interval(struct screen *s, int factor_up)
{
    if (factor_up && s->interval_ms < 60000)
        s->interval_ms *= 2;
    else if (!factor_up && s->interval_ms > 250)
        s->interval_ms /= 2;
    snprintf(s->message, sizeof s->message, "a look every %.2f s", s->interval_ms / 1000.0);
}

/* A terminal that was closed reads as "no key" at once, for ever. */
static bool is_gone(void)
{
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};

    return poll(&in, 1, 0) > 0 && (in.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

/* False: leave. */
static bool on_key(struct screen *s, int key)
{
    int i;

    if (key == ERR && is_gone())
        return false;
    if (key != ERR)
        s->message[0] = '\0';
    for (i = 0; i < top_nviews; i++) {
        if (key == top_views[i].key)
            show_view(s, &top_views[i]);
    }
    switch (key) {
    case 'q':
        return false;
    case '<':
        top_table_sort(&s->table, -1);
        break;
    case '>':
        top_table_sort(&s->table, 1);
        break;
    case 'r':
        top_table_sort(&s->table, 0);
        break;
    case 'k':
        order_client(s, "end the session of", "KILL", "ended");
        break;
    case 'c':
        order_client(s, "cancel what is run by", "CANCEL", "told to cancel");
        break;
    case ' ':
        s->is_stopped = !s->is_stopped;
        break;
    case '+':
        change_interval(s, 1);
        break;
    case '-':
        change_interval(s, 0);
        break;
    case KEY_UP:
        s->selected -= s->selected > 0;
        break;
    case KEY_DOWN:
        s->selected++;
        break;
    case KEY_NPAGE:
        s->selected += LINES - HEAD_LINES - 1;
        break;
    case KEY_PPAGE:
        s->selected = s->selected > LINES ? s->selected - (LINES - HEAD_LINES - 1) : 0;
        break;
    default:
        break;
    }
    return true;
}

int top_screen_run(struct top_link *l, int interval_ms, const struct top_view *first)
{
    struct screen s = {.link = l, .interval_ms = interval_ms};
    int64_t next = 0;
    int64_t left;

    setlocale(LC_ALL, "");
    top_table_init(&s.table, first);
    if (initscr() == NULL)
        return 1;
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    curs_set(0);
    start_color();
    use_default_colors();
    init_pair(PAIR_HEAD, COLOR_BLACK, COLOR_CYAN);
    init_pair(PAIR_WRONG, COLOR_RED, -1);
    do {
        if (now_ms() >= next && !s.is_stopped) {
            look(&s);
            next = now_ms() + s.interval_ms;
        }
        draw(&s);
        left = s.is_stopped ? s.interval_ms : next - now_ms();
        timeout(left > 0 ? (int)left : 0);
    } while (on_key(&s, getch()));
    endwin();
    top_table_fini(&s.table);
    return 0;
}
