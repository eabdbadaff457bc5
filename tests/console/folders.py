"""Folders: where the list is, uploads into one, and moving, renaming, deleting and finding what lies in one."""

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from files import finished, rows, write


def folders(page):
    """The names of the folders above the list."""
    return page.run("return [...document.querySelectorAll('.folders li bdi')].map(name => name.textContent)")


def tree(service, user):
    """Each file's folder and name."""
    items = service.call("GET", "/uploads?size=100", token=user.token)["items"]
    return sorted(f"{file['folder']}:{file['filename']}" for file in items)


def go(page, place, name, what="a"):
    """Clicks the link or button that reads so, in a part of the page."""
    find = lambda: [one for one in page.driver.find_elements("css selector", f"{place} {what}") if one.text == name]
    page.until(f"{name!r} in {place}", find)[0].click()


def keys(page, letter):
    ActionChains(page.driver).key_down(Keys.CONTROL).send_keys(letter).key_up(Keys.CONTROL).perform()


def put(service, user, *paths):
    """Uploads a text to each of the paths."""
    for path in paths:
        folder, name = path.rsplit("/", 1)
        service.upload(user, name, b"text", folder=folder or "/")


def test_a_new_folder_takes_uploads_and_the_address_names_it(page, service, tmp_path):
    user = service.new_user()
    page.sign_in(user, "/console/files")
    page.activate("New folder")
    page.fill("Name", "Häuser 1")
    page.activate("Go there")
    page.see("No files in this folder")
    assert "folder=%2FH%C3%A4user+1" in page.run("return location.search")
    page.choose_files(write(tmp_path, "a.txt"))
    finished(page, "1 done")
    page.until("row", lambda: rows(page) == ["a.txt"])
    assert tree(service, user) == ["/Häuser 1:a.txt"]
    page.check("folder-new")
    go(page, ".crumbs", "Files")
    page.until("folder", lambda: folders(page) == ["Häuser 1"])
    page.see("No files in this folder")
    go(page, ".folders", "Häuser 1")
    page.until("row", lambda: rows(page) == ["a.txt"])
    page.back()
    page.until("folder", lambda: folders(page) == ["Häuser 1"] and rows(page) == [])


def test_a_search_is_of_this_folder_or_of_all(page, service):
    user = service.new_user()
    put(service, user, "/plan.txt", "/a/plan.txt", "/a/b/plan 2.txt", "/a-b/plan 3.txt", "/a/other.txt")
    page.sign_in(user, "/console/files?folder=/a")
    page.until("rows", lambda: rows(page) == ["other.txt", "plan.txt"])
    assert folders(page) == ["b"]
    page.fill("Search", "plan")
    page.until("found", lambda: sorted(rows(page)) == ["plan 2.txt", "plan.txt"])
    page.see("/a/b")
    page.check("folder-search")
    page.activate("Search everywhere")
    page.until("all", lambda: len([name for name in rows(page) if name.startswith("plan")]) == 4)
    page.activate("/a-b")
    page.until("folder", lambda: rows(page) == ["plan 3.txt"])


def test_files_and_folders_are_moved_by_a_dialog_by_keys_and_by_dragging(page, service):
    user = service.new_user()
    put(service, user, "/1.txt", "/2.txt", "/3.txt", "/a/4.txt", "/b/5.txt")
    page.sign_in(user, "/console/files")
    page.until("rows", lambda: len(rows(page)) == 3 and folders(page) == ["a", "b"])
    # By the bar of what is selected.
    page.toggle("Select 1.txt")
    page.activate("Move")
    page.fill("Folder", "/c/d")
    go(page, "dialog", "Move", "button")
    page.see("1.txt has been moved.")
    page.until("folders", lambda: folders(page) == ["a", "b", "c"])
    # By keys.
    page.tab_to("2.txt")
    keys(page, "x")
    page.see("1 file is cut.")
    go(page, ".folders", "a")
    page.until("row", lambda: rows(page) == ["4.txt"])
    keys(page, "v")
    page.until("rows", lambda: sorted(rows(page)) == ["2.txt", "4.txt"])
    go(page, ".crumbs", "Files")
    page.until("rows", lambda: rows(page) == ["3.txt"])
    # By dragging: a file, and a folder.
    drag(page, ".files-list tbody th a", '.folders [data-folder="/b"]', lambda: rows(page) == [])
    drag(page, '.folders [data-folder="/b"]', '.folders [data-folder="/a"]', lambda: folders(page) == ["a", "c"])
    expected = ["/a/b:3.txt", "/a/b:5.txt", "/a:2.txt", "/a:4.txt", "/c/d:1.txt"]
    assert tree(service, user) == expected
    # A folder gets another name.
    page.activate("Move or rename a")
    page.fill("Folder", "/z")
    go(page, "dialog", "Move", "button")
    page.until("folders", lambda: folders(page) == ["c", "z"])
    page.check("folder-moved")
    # One that cannot be is said where it is asked for.
    page.activate("Move or rename z")
    page.fill("Folder", "/z/z")
    go(page, "dialog", "Move", "button")
    page.see("Must not be in the folder that is moved")


def drag(page, source, target, is_moved):
    """Drags until it is moved: the list may be drawn anew meanwhile, and then what is dragged is lost."""
    find = lambda selector: page.driver.find_element("css selector", selector)
    move = lambda: ActionChains(page.driver).drag_and_drop(find(source), find(target)).perform()
    page.until("what is dragged", lambda: is_moved() or move() or is_moved())


def test_a_folder_is_deleted_and_restored_whole(page, service):
    user = service.new_user()
    put(service, user, "/a/1.txt", "/a/b/2.txt", "/before.txt", "/3.txt")
    before = service.call("GET", "/uploads?search=before", token=user.token)["items"][0]["id"]
    service.call("DELETE", f"/uploads/{before}", token=user.token)
    page.sign_in(user, "/console/files")
    page.until("folders", lambda: folders(page) == ["a"])
    page.activate("Delete a")
    go(page, "dialog", "Delete", "button")
    page.see("a has been deleted, with 2 files.")
    page.until("none", lambda: folders(page) == [])
    page.activate("Undo")
    page.until("folders", lambda: folders(page) == ["a"])
    assert tree(service, user) == ["/:3.txt", "/a/b:2.txt", "/a:1.txt"]
    page.open("/console/files/deleted")
    page.until("deleted", lambda: rows(page) == ["before.txt"])


def test_the_tree_opens_beside_the_list_where_there_is_room(page, service):
    user = service.new_user()
    put(service, user, "/a/b/c/1.txt", "/d/2.txt")
    page.screen(1400)
    page.sign_in(user, "/console/files?folder=/a/b")
    shown = lambda: page.run("return [...document.querySelectorAll('.tree bdi')].map(name => name.textContent)")
    page.until("opened", lambda: shown() == ["a", "b", "d"])
    page.activate("Folders in b")
    page.until("child", lambda: shown() == ["a", "b", "c", "d"])
    assert page.focused().accessible_name == "Folders in b"
    page.activate("Folders in a")
    page.until("closed", lambda: shown() == ["a", "d"])
    go(page, ".tree", "d")
    page.until("row", lambda: rows(page) == ["2.txt"])
    page.check("folder-tree")


def test_ten_thousand_folders_stay_usable(page, service):
    user = service.new_user()
    service.sql("INSERT INTO files (id, user_id, folder, filename, original_filename, content_type, file_size, file_path, "
                f"file_hash) SELECT gen_random_uuid(), '{user.id}', 'many' || chr(1) || lpad(n::text, 5, '0') || chr(1), "
                "'f', 'f', 'text/plain', 1, '-', '-' FROM generate_series(1, 10000) n")
    page.sign_in(user, "/console/files?folder=/many")
    page.until("first", lambda: len(folders(page)) == 100)
    go(page, ".folders", "More folders", "button")
    page.until("more", lambda: folders(page)[-1] == "00200")
    go(page, ".folders", "00150")
    page.until("row", lambda: rows(page) == ["f"])


def test_a_folder_is_called_what_it_is_called_whatever_that_would_be_in_html(page, service):
    user = service.new_user()
    name = '<img src=x onerror="document.title=1">'
    put(service, user, f"/{name}/javascript:alert(1)/a.txt")
    page.sign_in(user, "/console/files")
    page.until("folder", lambda: folders(page) == [name])
    go(page, ".folders", name)
    page.until("folder", lambda: folders(page) == ["javascript:alert(1)"])
    go(page, ".folders", "javascript:alert(1)")
    page.until("row", lambda: rows(page) == ["a.txt"])
    page.activate("a.txt")
    page.see(f"/{name}/javascript:alert(1)")
    assert page.run("return document.title").startswith("a.txt")
